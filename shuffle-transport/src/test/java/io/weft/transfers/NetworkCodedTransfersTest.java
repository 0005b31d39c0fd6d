package io.weft.transfers;

/** Executors connected by TCP. */
class NetworkCodedTransfersTest extends CodedTransferContract {
  @Override
  Executors.Communicators communicators() {
    return new NetworkTransfersTest().communicators();
  }
}
