package io.weft.spark.sql;

import java.util.HashMap;
import java.util.Map;
import java.util.function.Supplier;
import org.apache.spark.sql.SparkSession;
import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/** A local Spark with the plugin on, for the tests of one class. */
final class SqlSpark implements BeforeAllCallback, AfterAllCallback {
  private final Map<String, String> settings;
  private SparkSession session;

  SqlSpark() {
    this(Map.of());
  }

  SqlSpark(Map<String, String> settings) {
    this.settings = settings;
  }

  @Override
  public void beforeAll(ExtensionContext context) {
    SparkSession.Builder builder =
        SparkSession.builder()
            .master("local[2]")
            .appName(context.getDisplayName())
            .config("spark.ui.enabled", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", "5")
            // Room for the compiled code of all queries of a class.
            .config("spark.sql.codegen.cache.maxEntries", "2000")
            .config("spark.plugins", "io.weft.spark.WeftPlugin");
    settings.forEach(builder::config);
    session = builder.getOrCreate();
  }

  @Override
  public void afterAll(ExtensionContext context) {
    session.stop();
    SparkSession.clearActiveSession();
    SparkSession.clearDefaultSession();
  }

  SparkSession session() {
    return session;
  }

  /** Runs work with session settings and restores them afterwards. */
  <T> T with(Map<String, String> changes, Supplier<T> work) {
    Map<String, String> before = new HashMap<>();
    changes.forEach((key, value) -> before.put(key, session.conf().get(key, null)));
    changes.forEach(session.conf()::set);
    try {
      return work.get();
    } finally {
      before.forEach(this::putBack);
    }
  }

  private void putBack(String key, String value) {
    if (value == null) {
      session.conf().unset(key);
    } else {
      session.conf().set(key, value);
    }
  }
}
