package io.weft.shuffle;

import io.weft.support.TestCluster;

/** Runs with all blocks encrypted on disk. */
class EncryptedOwnPathTest extends OwnPathTest {
  @Override
  TestCluster prepare(TestCluster plain) {
    return plain.encrypted();
  }
}
