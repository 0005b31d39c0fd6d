/** Tests of the exchange that devices run without the host, on the double of libcuda. */
package io.weft.collectives.peer;
