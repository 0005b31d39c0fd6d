package io.weft.transfers;

/** Executors that share memory. */
class SharedMemoryCodedTransfersTest extends CodedTransferContract {
  @Override
  Executors.Communicators communicators() {
    return new SharedMemoryTransfersTest().communicators();
  }
}
