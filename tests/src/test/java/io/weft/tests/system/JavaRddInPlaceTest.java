package io.weft.tests.system;

/** Streams of Java's serialization, which executors read in each other's memory. */
class JavaRddInPlaceTest extends RddEqualityContract {
  JavaRddInPlaceTest() {
    super("JavaSerializer", "auto");
  }

  @Override
  String blocksOfThisWay() {
    return "sameHostBlocks";
  }
}
