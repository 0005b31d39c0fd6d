/** Tests of addresses and path rules of executors. */
package io.weft.shuffle.peer;
