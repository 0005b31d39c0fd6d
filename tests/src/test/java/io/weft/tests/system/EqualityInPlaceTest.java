package io.weft.tests.system;

import java.util.List;

/** The equality contract with executors that read each other's memory in place. */
class EqualityInPlaceTest extends EqualityContract {
  EqualityInPlaceTest() {
    super("auto");
  }

  /** The other ways go over TCP. The rows route is also the automatic one of most queries. */
  @Override
  List<Way> ways() {
    return List.of(new Way("auto", true), new Way("columns", false));
  }

  @Override
  String blocksOfThisWay() {
    return "sameHostBlocks";
  }

  @Override
  String blocksOfTheOtherWay() {
    return "remoteBlocks";
  }
}
