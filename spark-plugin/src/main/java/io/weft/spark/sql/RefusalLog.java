package io.weft.spark.sql;

import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Logs why exchanges do not take the columns route, once per reason and JVM. Thread-safe. */
final class RefusalLog {
  private static final Logger LOG = LoggerFactory.getLogger(RefusalLog.class);

  /** Maximum number of logged reasons. Reasons name types, whose number is unlimited. */
  private static final int MAX_REASONS = 1000;

  private static final Set<String> SAID = ConcurrentHashMap.newKeySet();

  private RefusalLog() {}

  static void say(String reason) {
    if (SAID.size() < MAX_REASONS && SAID.add(reason)) {
      LOG.info("An exchange stays with Spark's node instead of the columns route: {}", reason);
    }
  }
}
