/** Who may connect to a rank, and who may not. */
package io.weft.collectives.net;
