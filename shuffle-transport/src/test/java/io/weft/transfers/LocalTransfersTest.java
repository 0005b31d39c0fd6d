package io.weft.transfers;

import io.weft.collectives.local.LocalCommunicator;

/** Executors with the reference implementation of communicators. */
class LocalTransfersTest extends TransferContract {
  @Override
  Executors.Communicators communicators() {
    return (folder, executor) -> LocalCommunicator::create;
  }
}
