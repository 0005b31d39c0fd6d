/** Keeps log lines for tests that read them. */
package io.weft.logging;
