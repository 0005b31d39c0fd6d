package io.weft.spark.ui;

import io.weft.spark.driver.DriverState;
import org.apache.spark.SparkContext;
import org.apache.spark.ui.SparkUI;
import org.apache.spark.ui.SparkUITab;

/** The Weft tab of the Spark UI. */
public final class WeftTab extends SparkUITab {
  private WeftTab(SparkUI ui, DriverState state) {
    super(ui, "weft");
    attachPage(new WeftPage(this, state));
  }

  /** Adds the tab, if the application has a UI. */
  public static void attach(SparkContext context, DriverState state) {
    if (context.ui().isDefined()) {
      SparkUI ui = context.ui().get();
      ui.attachTab(new WeftTab(ui, state));
    }
  }

  @Override
  public String name() {
    return "Weft";
  }
}
