package io.weft.spark.shuffle;

import io.weft.spark.compat.RowSerializer;
import io.weft.spark.compat.SparkFeatures;
import io.weft.spark.config.Activation;
import io.weft.spark.config.WeftSettings;
import java.util.Optional;
import org.apache.spark.ShuffleDependency;
import org.apache.spark.SparkConf;
import org.apache.spark.serializer.KryoSerializer;
import org.apache.spark.serializer.Serializer;
import org.apache.spark.sql.internal.SQLConf;

/** Decides on the driver which shuffles Weft carries. */
final class Eligibility {
  private final SparkConf conf;
  private final boolean started;

  /** Creates the rules for an application. */
  Eligibility(SparkConf conf) {
    this.conf = conf;
    this.started = Activation.isActive(conf);
  }

  /** Returns why Weft does not carry a shuffle; empty if it does. */
  Optional<String> refusal(ShuffleDependency<?, ?, ?> dependency) {
    if (!started) {
      return Optional.of("the plugin does not serve this application");
    }
    if (dependency instanceof ExchangeDependency) {
      return Optional.empty(); // Its planner has already read the settings.
    }
    return shape(dependency).or(this::settings);
  }

  private Optional<String> shape(ShuffleDependency<?, ?, ?> dependency) {
    Serializer serializer = dependency.serializer();
    if (!RowSerializer.packsRows(serializer) && !KryoRecords.takes(serializer, conf)) {
      return Optional.of(
          "its records are not packed SQL rows but go through "
              + serializer.getClass().getSimpleName()
              + (serializer instanceof KryoSerializer ? " without WeftKryoRegistrator" : ""));
    }
    if (dependency.aggregator().isDefined() || dependency.mapSideCombine()) {
      return Optional.of("it aggregates records");
    }
    return dependency.keyOrdering().isDefined()
        ? Optional.of("it sorts records by key")
        : Optional.empty();
  }

  private Optional<String> settings() {
    if (!enabled()) {
      return Optional.of(WeftSettings.ENABLED.key() + " is false in its session");
    }
    return SparkFeatures.forcesPushBasedShuffle(conf)
        ? Optional.of(
            "push-based shuffle is on, and Spark before 4.2 cannot exclude a single"
                + " shuffle from it")
        : Optional.empty();
  }

  /** Returns the session's setting, or the application's outside a session. */
  private boolean enabled() {
    String session = SQLConf.get().getConfString(WeftSettings.ENABLED.key(), null);
    return session == null ? WeftSettings.ENABLED.get(conf) : WeftSettings.ENABLED.parse(session);
  }
}
