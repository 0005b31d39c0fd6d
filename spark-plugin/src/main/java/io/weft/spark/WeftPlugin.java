package io.weft.spark;

import io.weft.spark.runtime.WeftExecutorPlugin;
import org.apache.spark.api.plugin.DriverPlugin;
import org.apache.spark.api.plugin.ExecutorPlugin;
import org.apache.spark.api.plugin.SparkPlugin;

/** The plugin that turns Weft on: {@code spark.plugins=io.weft.spark.WeftPlugin}. */
public final class WeftPlugin implements SparkPlugin {
  @Override
  public DriverPlugin driverPlugin() {
    return new WeftDriver();
  }

  @Override
  public ExecutorPlugin executorPlugin() {
    return new WeftExecutorPlugin();
  }
}
