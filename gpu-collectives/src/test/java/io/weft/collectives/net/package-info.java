/** Tests of which processes may connect to a rank. */
package io.weft.collectives.net;
