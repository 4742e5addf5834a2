from gccost.cli import main

main(prog_name="gccost")
