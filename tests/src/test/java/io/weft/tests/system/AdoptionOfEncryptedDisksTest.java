package io.weft.tests.system;

import org.junit.jupiter.api.Tag;

/** Adopted blocks are spilled to disk and encrypted, nearly all of them. */
@Tag("slow")
class AdoptionOfEncryptedDisksTest extends AdoptionContract {
  private static final int SEGMENT = 1 << 20;

  AdoptionOfEncryptedDisksTest() {
    cluster
        .set("spark.io.encryption.enabled", "true")
        .set("spark.weft.adopt.verify", "whole")
        .set("spark.weft.memory.segmentSize", Integer.toString(SEGMENT))
        .set("spark.weft.memory.size", Integer.toString(SEGMENT))
        .set("spark.weft.spill.privateMemory", Integer.toString(32 * SEGMENT));
  }

  /** An executor takes over at most a whole budget, which is one segment here. */
  @Override
  int deaths() {
    return 1;
  }
}
