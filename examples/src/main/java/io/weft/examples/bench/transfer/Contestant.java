package io.weft.examples.bench.transfer;

import java.io.IOException;

/** One side of a row, ready to run again and again. */
record Contestant(String name, Run run) {
  /** One run. */
  @FunctionalInterface
  interface Run {
    Cost once() throws IOException, InterruptedException;
  }
}
