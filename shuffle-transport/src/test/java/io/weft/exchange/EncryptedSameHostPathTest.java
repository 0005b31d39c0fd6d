package io.weft.exchange;

import io.weft.support.TestCluster;

/** Everything lies on disk, encrypted. */
class EncryptedSameHostPathTest extends SameHostPathTest {
  @Override
  TestCluster prepare(TestCluster plain) {
    return plain.encrypted();
  }
}
