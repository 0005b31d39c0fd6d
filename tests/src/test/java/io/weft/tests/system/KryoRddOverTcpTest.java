package io.weft.tests.system;

/** Streams of Kryo, which executors fetch from each other over TCP. */
class KryoRddOverTcpTest extends RddEqualityContract {
  KryoRddOverTcpTest() {
    super("KryoSerializer", "tcp");
  }

  @Override
  String blocksOfThisWay() {
    return "remoteBlocks";
  }
}
