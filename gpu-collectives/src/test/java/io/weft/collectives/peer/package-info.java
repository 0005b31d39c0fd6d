/** Tests of the exchange that devices write by themselves, on the double of libcuda. */
package io.weft.collectives.peer;
