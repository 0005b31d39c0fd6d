/**
 * Runs programs of others without and with Weft and compares their results. Start with {@link
 * io.weft.compat.Compat}. One program runs at a time; sessions are stopped after it.
 */
package io.weft.compat;
