package io.weft.spark.ui;

import io.weft.spark.compat.ScalaInterop;
import java.util.NoSuchElementException;
import org.apache.spark.SparkConf;
import org.apache.spark.scheduler.SparkListener;
import org.apache.spark.scheduler.SparkListenerEvent;
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
    KVStore store = ui.store().store();
    ActivityEvent all;
    try {
      all = StatusJson.read(store.read(Stored.class, Stored.KEY).json);
    } catch (NoSuchElementException e) {
      return;
    } catch (Exception e) {
      LOG.warn("The Weft tab of an application cannot be read; its other tabs can", e);
      return;
    }
    Activity activity = new Activity();
    activity.apply(all);
    Overview overview = all.overview();
    WeftTab.attach(ui, new TabContents(() -> overview, activity, settings(ui)));
  }

  /** The application's settings, from which Spark has removed secrets. */
  private static SparkConf settings(SparkUI ui) {
    SparkConf conf = new SparkConf(false);
    CollectionConverters.asJava(ui.store().environmentInfo().sparkProperties())
        .forEach(property -> conf.set(property._1(), property._2()));
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
