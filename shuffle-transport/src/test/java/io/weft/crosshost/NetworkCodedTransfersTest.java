package io.weft.crosshost;

/** Executors that reach each other by TCP. */
class NetworkCodedTransfersTest extends CodedTransferContract {
  @Override
  Executors.Communicators communicators() {
    return new NetworkTransfersTest().communicators();
  }
}
