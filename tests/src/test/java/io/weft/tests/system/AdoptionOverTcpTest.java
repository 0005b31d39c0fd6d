package io.weft.tests.system;

/** Adopted blocks are sent by TCP. */
class AdoptionOverTcpTest extends AdoptionContract {
  AdoptionOverTcpTest() {
    cluster.set("spark.weft.transport", "tcp");
  }
}
