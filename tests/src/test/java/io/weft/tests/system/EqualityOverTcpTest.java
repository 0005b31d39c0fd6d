package io.weft.tests.system;

import org.junit.jupiter.api.Tag;

/** The equality contract where executors ask each other over TCP. */
@Tag("slow")
class EqualityOverTcpTest extends EqualityContract {
  EqualityOverTcpTest() {
    super("tcp");
  }

  @Override
  String blocksOfThisWay() {
    return "remoteBlocks";
  }

  @Override
  String blocksOfTheOtherWay() {
    return "sameHostBlocks";
  }
}
