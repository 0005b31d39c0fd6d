package io.weft.migration;

import io.weft.support.TestCluster;

/** Map outputs that lie on disk, encrypted, and move as they are. */
class EncryptedMigrationTest extends MigrationTest {
  @Override
  TestCluster prepare(TestCluster plain) {
    return plain.encrypted();
  }
}
