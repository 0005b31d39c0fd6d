package io.weft.exchange;

import io.weft.support.TestCluster;

/** Everything lies on disk, encrypted. */
class EncryptedTcpPathTest extends TcpPathTest {
  @Override
  TestCluster prepare(TestCluster plain) {
    return plain.encrypted();
  }
}
