package io.weft.tests.system;

/** Streams of Java's serialization on encrypted disks, over TCP, in short chunks. */
class EncryptedRddOverTcpTest extends RddEqualityContract {
  private static final String SEGMENT = Integer.toString(1 << 20);

  EncryptedRddOverTcpTest() {
    super("JavaSerializer", "tcp");
    cluster
        .set("spark.io.encryption.enabled", "true")
        .set("spark.weft.memory.segmentSize", SEGMENT)
        .set("spark.weft.memory.size", SEGMENT)
        .set("spark.weft.fetch.requestSize", "64k");
  }

  @Override
  String blocksOfThisWay() {
    return "remoteBlocks";
  }
}
