package io.weft.examples.measure;

import java.time.Instant;
import java.time.temporal.ChronoUnit;

/**
 * The circumstances of a run, for reports.
 *
 * @param when the current time in ISO form, in seconds
 * @param weftVersion of the project
 * @param javaVersion of all processes
 * @param system name and version of the operating system
 * @param cores of the machine
 */
public record Environment(
    String when, String weftVersion, String javaVersion, String system, int cores) {
  /** Reads the properties of this process. */
  public static Environment current() {
    String version = Environment.class.getPackage().getImplementationVersion();
    return new Environment(
        Instant.now().truncatedTo(ChronoUnit.SECONDS).toString(),
        version == null ? "unpackaged" : version,
        System.getProperty("java.version"),
        System.getProperty("os.name") + " " + System.getProperty("os.version"),
        Runtime.getRuntime().availableProcessors());
  }
}
