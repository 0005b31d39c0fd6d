package io.weft.tests.system;

/** Encrypted disks with executors that fetch from each other over TCP. */
class EncryptedDisksOverTcpTest extends EncryptedDisksContract {
  EncryptedDisksOverTcpTest() {
    super("tcp");
  }
}
