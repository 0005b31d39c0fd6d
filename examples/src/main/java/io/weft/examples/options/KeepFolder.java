package io.weft.examples.options;

import picocli.CommandLine.Option;

/** The option of a command that works in a temporary folder. */
public final class KeepFolder {
  @Option(names = "--keep", description = "Keep the temporary folder with the logs")
  private boolean keep;

  /** Whether the folder stays. */
  public boolean keep() {
    return keep;
  }
}
