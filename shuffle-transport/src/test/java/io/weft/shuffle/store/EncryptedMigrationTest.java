package io.weft.shuffle.store;

import io.weft.support.TestCluster;

/** Migration of map outputs that are encrypted on disk. They stay encrypted on the way. */
class EncryptedMigrationTest extends MigrationTest {
  @Override
  TestCluster prepare(TestCluster plain) {
    return plain.encrypted();
  }
}
