package io.weft.tests.system;

import org.junit.jupiter.api.Tag;

/** The equality contract where executors read each other's memory in place. */
@Tag("slow")
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
