package io.weft.exchange;

import io.weft.support.TestCluster;

/** Everything lies on disk, encrypted. */
class EncryptedOwnPathTest extends OwnPathTest {
  @Override
  TestCluster prepare(TestCluster plain) {
    return plain.encrypted();
  }
}
