package io.weft.examples.side;

import java.util.Map;

/**
 * How to start a side.
 *
 * @param name short, fit for a file name
 * @param label what people call it
 * @param driverMemory the driver's heap, as {@code java -Xmx} takes it
 * @param conf Spark settings
 */
public record SideOptions(
    String name, String label, String driverMemory, Map<String, String> conf) {
  public SideOptions {
    conf = Map.copyOf(conf);
  }

  /** Beside another side of the same kind: each has files of its own. */
  public SideOptions renamed(String newName) {
    return new SideOptions(newName, label, driverMemory, conf);
  }
}
