package io.weft.tests.system;

/** 32 tasks at once in one executor. */
class ThirtyTwoTasksAtOnceTest extends ManyTasksContract {
  ThirtyTwoTasksAtOnceTest() {
    super(32);
  }
}
