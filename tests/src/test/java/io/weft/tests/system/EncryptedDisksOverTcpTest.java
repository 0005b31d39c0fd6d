package io.weft.tests.system;

/** Encrypted disks where executors ask each other over TCP. */
class EncryptedDisksOverTcpTest extends EncryptedDisksContract {
  EncryptedDisksOverTcpTest() {
    super("tcp");
  }
}
