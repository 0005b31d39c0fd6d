/**
 * {@code weft doctor}: what this machine can do, and what Weft would do on it. Looks and leaves
 * nothing behind; no threads.
 */
package io.weft.examples.doctor;
