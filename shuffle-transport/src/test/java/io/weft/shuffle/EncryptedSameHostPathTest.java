package io.weft.shuffle;

import io.weft.support.TestCluster;

/** Runs with all blocks encrypted on disk. */
class EncryptedSameHostPathTest extends SameHostPathTest {
  @Override
  TestCluster prepare(TestCluster plain) {
    return plain.encrypted();
  }
}
