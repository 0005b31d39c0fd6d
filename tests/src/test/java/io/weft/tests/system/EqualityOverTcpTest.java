package io.weft.tests.system;

/** The equality contract where executors ask each other over TCP. */
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
