export * from "diff";
