/** Keeps what is logged, for tests that read it back. */
package io.weft.logging;
