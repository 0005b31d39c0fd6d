/** How long tests wait for what other threads do. */
package io.weft.patience;
