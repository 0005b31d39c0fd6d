package io.weft.suites;

import io.weft.shuffle.peer.ExchangeCounter;
import io.weft.spark.runtime.WeftExecutor;
import org.apache.spark.sql.JoinSuite;

/**
 * Spark's {@code JoinSuite}, in a JVM whose system properties switch on Weft. At its end Weft must
 * have carried shuffles; otherwise the suites of that JVM would have tested something else.
 */
public class JoinSuiteWithWeft extends JoinSuite {
  @Override
  public void afterAll() {
    try {
      requireMapOutputs();
    } finally {
      super.afterAll();
    }
  }

  /** Fails if Weft has carried no shuffle in the running context. */
  static void requireMapOutputs() {
    long outputs = WeftExecutor.exchange().statistics().get(ExchangeCounter.OUTPUTS_PUBLISHED);
    System.out.println("Weft carried " + outputs + " map outputs of this suite");
    if (outputs == 0) {
      throw new IllegalStateException("Weft carried no shuffle of this suite");
    }
  }
}
