package io.weft.crosshost;

import io.weft.collectives.local.LocalCommunicator;

/** Executors whose communicators are the reference implementation. */
class LocalTransfersTest extends TransferContract {
  @Override
  Executors.Communicators communicators() {
    return (folder, executor) -> LocalCommunicator::create;
  }
}
