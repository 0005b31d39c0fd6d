package io.weft.timeouts;

import java.time.Duration;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * Sets the default timeout of all test waits, long enough for a busy machine, and a short poll
 * interval. JUnit finds it as a service.
 */
public final class DefaultTimeouts implements BeforeAllCallback {
  private static final Duration TIMEOUT = Duration.ofSeconds(60);
  private static final Duration POLL_INTERVAL = Duration.ofMillis(20);

  @Override
  public void beforeAll(ExtensionContext context) {
    Awaitility.setDefaultTimeout(TIMEOUT);
    Awaitility.setDefaultPollDelay(Duration.ZERO);
    Awaitility.setDefaultPollInterval(POLL_INTERVAL);
  }
}
