package io.weft.tests.system;

import java.util.List;

/** The equality contract with executors that fetch from each other over TCP. */
class EqualityOverTcpTest extends EqualityContract {
  EqualityOverTcpTest() {
    super("tcp");
  }

  @Override
  List<Way> ways() {
    return List.of(new Way("columns", true), new Way("rows", false));
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
