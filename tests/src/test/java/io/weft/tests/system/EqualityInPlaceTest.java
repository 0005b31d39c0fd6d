package io.weft.tests.system;

/** The equality contract where executors read each other's memory in place. */
class EqualityInPlaceTest extends EqualityContract {
  EqualityInPlaceTest() {
    super("auto");
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
