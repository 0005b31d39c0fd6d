package io.weft.tests.system;

import org.junit.jupiter.api.Tag;

/** Adopted blocks are sent by TCP. */
@Tag("slow")
class AdoptionOverTcpTest extends AdoptionContract {
  AdoptionOverTcpTest() {
    cluster.set("spark.weft.transport", "tcp");
  }
}
