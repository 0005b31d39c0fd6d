/** Where the ends of cliques meet on the driver, and how an executor asks. */
package io.weft.spark.transfers;
