package io.weft.tests.system;

/** 16 tasks at once in one executor. */
class SixteenTasksAtOnceTest extends ManyTasksContract {
  SixteenTasksAtOnceTest() {
    super(16);
  }
}
