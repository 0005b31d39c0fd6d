package io.weft.support;

import java.time.Duration;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/**
 * Sets the default timeout and poll interval of Awaitility for all tests. The timeout is long
 * enough for a busy machine. JUnit loads this class as a service.
 */
public final class AwaitilityDefaults implements BeforeAllCallback {
  private static final Duration MOST = Duration.ofSeconds(60);
  private static final Duration BETWEEN_LOOKS = Duration.ofMillis(20);

  @Override
  public void beforeAll(ExtensionContext context) {
    Awaitility.setDefaultTimeout(MOST);
    Awaitility.setDefaultPollDelay(Duration.ZERO);
    Awaitility.setDefaultPollInterval(BETWEEN_LOOKS);
  }
}
