package io.weft.spark.ui;

import io.weft.spark.compat.ScalaInterop;
import org.apache.spark.SparkConf;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
import org.apache.spark.scheduler.SparkListenerExecutorRemoved;
import org.apache.spark.status.AppHistoryServerPlugin;
import org.apache.spark.status.ElementTrackingStore;
import org.apache.spark.ui.SparkUI;
import org.apache.spark.util.kvstore.KVIndex;
import org.apache.spark.util.kvstore.KVStore;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.runtime.BoxedUnit;

/**
 * Adds the Weft tab to applications in Spark's history server. Spark finds this class by {@code
 * META-INF/services} if Weft's jar is in the server's class path. Applications without Weft get no
 * tab. Stateless.
 */
public final class WeftHistory implements AppHistoryServerPlugin {
  private static final Logger LOG = LoggerFactory.getLogger(WeftHistory.class);

  /** The constructor that Spark calls. */
  public WeftHistory() {}

  @Override
  public Seq<SparkListener> createListeners(SparkConf conf, ElementTrackingStore store) {
    return ScalaInterop.seq(new Replay(store));
  }

  @Override
  public void setupUI(SparkUI ui) {
    // A failure here must not keep Spark from showing its own tabs.
    try {
      KVStore store = ui.store().store();
      if (store.count(Stored.class) > 0) {
        attach(ui, StatusJson.read(store.read(Stored.class, Stored.KEY).json));
      }
    } catch (Exception | LinkageError e) {
      LOG.warn("The Weft tab of an application cannot be shown; its other tabs can", e);
    }
  }

  private static void attach(SparkUI ui, ActivityEvent all) {
    Activity activity = new Activity();
    activity.apply(all);
    Overview overview = all.overview();
    WeftTab.attach(ui, new TabContents(() -> overview, activity, settings(ui)));
  }

  /** The application's settings of Weft, from which Spark has removed secrets. */
  private static SparkConf settings(SparkUI ui) {
    SparkConf conf = new SparkConf(false);
    CollectionConverters.asJava(ui.store().environmentInfo().sparkProperties())
        .forEach(
            property -> {
              if (property._1().startsWith("spark.weft.")) {
                conf.set(property._1(), property._2());
              }
            });
    return conf;
  }

  /** Collects the events of one log and stores what they add up to. For Spark's replay thread. */
  private static final class Replay extends SparkListener {
    private final Activity activity = new Activity();
    private Overview overview;

    Replay(ElementTrackingStore store) {
      store.onFlush(() -> store(store));
    }

    private BoxedUnit store(ElementTrackingStore store) {
      if (overview != null) {
        store.write(new Stored(StatusJson.write(activity.all(overview))));
      }
      return BoxedUnit.UNIT;
    }

    /** Ends executors of which the driver logged no more. */
    @Override
    public void onExecutorRemoved(SparkListenerExecutorRemoved removed) {
      activity.executors().ended(removed.executorId());
    }

    @Override
    public void onOtherEvent(SparkListenerEvent event) {
      if (event instanceof ActivityEvent changes) {
        activity.apply(changes);
        overview = changes.overview() == null ? overview : changes.overview();
      }
    }
  }

  /** The contents of a tab in the history server's store, in memory or on disk. */
  public static final class Stored {
    static final String KEY = "weft";

    /** The natural key that the store demands. */
    @KVIndex public String key = KEY;

    /** An {@link ActivityEvent} with all rows, as JSON. */
    public String json;

    /** The constructor that the store calls. */
    public Stored() {}

    Stored(String json) {
      this.json = json;
    }
  }
}
