package io.weft.tests.system;

import org.junit.jupiter.api.Tag;

/** 32 tasks at once in one executor. */
@Tag("slow")
class ThirtyTwoTasksAtOnceTest extends ManyTasksContract {
  ThirtyTwoTasksAtOnceTest() {
    super(32);
  }
}
